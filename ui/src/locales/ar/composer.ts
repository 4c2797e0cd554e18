import { translation } from '../en/catalogue';

/** Writing a question: the field, the question that waits, snippets. */
export const composer = translation({
  'composer.placeholder': 'اسأل ما تشاء',
  'composer.label': 'الرسالة',
  'composer.send': 'إرسال',
  'composer.stop': 'إيقاف',
  'composer.tokens': { zero: 'لا رموز', one: 'رمز واحد', two: 'رمزان', few: '{count} رموز', many: '{count} رمزًا', other: '{count} رمز' },
  'composer.tokensFull': 'الرموز {count}، والمتاح {free} فقط',
  'composer.tokensHint': 'السياق الذي تستخدمه هذه الرسالة',

  'queue.next': 'التالي',
  'queue.attached': { one: 'مرفق واحد', two: 'مرفقان', few: '{count} مرفقات', many: '{count} مرفقًا', other: '{count} مرفق' },
  'queue.edit': 'تعديل الرسالة المنتظرة',
  'queue.cancel': 'إزالة من قائمة الانتظار',
  'queue.cancelled': 'أُزيلت من قائمة الانتظار.',
  'queue.send': 'إرسال بعد هذه الإجابة',

  'snippet.list': 'المقتطفات',
  'composer.add': 'إضافة',
  'composer.attach': 'إرفاق ملفات…',
  'composer.compare': 'مقارنة الإجابات…',
  'composer.tools': 'الأدوات…',
  'composer.budget': 'حد التفكير…',
});
