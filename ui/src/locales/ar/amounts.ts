import { translation } from '../en/catalogue';

/** Sizes, counts and durations. */
export const amounts = translation({
  'amount.bytes': { zero: 'لا بايت', one: 'بايت واحد', two: 'بايتان', few: '{count} بايتات', many: '{count} بايتًا', other: '{count} بايت' },
  'amount.kB': '{value} ك.ب',
  'amount.MB': '{value} م.ب',
  'amount.GB': '{value} غ.ب',
  'amount.TB': '{value} ت.ب',
  'amount.progress': '{done} من {total}',
  'amount.perSecond': '{size}/ث',
  'amount.thousands': '{value} ألف',
  'amount.millions': '{value} مليون',
  'amount.tokens': { zero: 'لا رموز', one: 'رمز واحد', two: 'رمزان', few: '{count} رموز', many: '{count} رمزًا', other: '{count} رمز' },
  'amount.context': 'سياق {tokens}',
  'amount.contextTokens': '{tokens} رمز',
  'amount.memory': 'الذاكرة {total} · المتاح {free}',
  'amount.files': { zero: 'لا ملفات', one: 'ملف واحد', two: 'ملفان', few: '{count} ملفات', many: '{count} ملفًا', other: '{count} ملف' },
  'amount.models': { zero: 'لا نماذج', one: 'نموذج واحد', two: 'نموذجان', few: '{count} نماذج', many: '{count} نموذجًا', other: '{count} نموذج' },

  'time.milliseconds': '{value} م.ث',
  'time.seconds': '{value} ث',
  'time.minutesSeconds': '{minutes} د {seconds} ث',
  'time.minutes': '{minutes} د',
  'time.hoursMinutes': '{hours} س {minutes} د',
  'time.justNow': 'الآن',
  'time.left.moment': 'بقيت بضع ثوانٍ',
  'time.left.seconds': 'بقي {seconds} ث',
  'time.left.minutes': 'بقي {minutes} د',
  'time.left.hours': 'بقي {hours} س',
  'time.left.hoursMinutes': 'بقي {hours} س {minutes} د',
  'time.left.days': { one: 'بقي يوم واحد', two: 'بقي يومان', few: 'بقيت {count} أيام', many: 'بقي {count} يومًا', other: 'بقي {count} يوم' },
});
