import { translation } from '../en/catalogue';

/** The tools of a chat: the panel that chooses them, and the chip that counts them. */
export const chatTools = translation({
  'chatTools.title': 'الأدوات',
  'chatTools.count': { zero: 'لا أدوات', one: 'أداة واحدة', two: 'أداتان', few: '{count} أدوات', many: '{count} أداة', other: '{count} أداة' },
  'chatTools.chip': 'أدوات هذه المحادثة: {tools}',
  'chatTools.sum': 'مفعّل: {tools}، نحو {tokens}',
  'chatTools.none': 'لا أداة مفعّلة. كل أداة تستخدم جزءًا من السياق.',
  'chatTools.consent': 'التفعيل يعرض الأداة على النموذج فقط. تبقى الاستدعاءات بحاجة إلى موافقتك.',
  'chatTools.modelCannot': 'هذا النموذج لا يدعم الأدوات.',
  'chatTools.reading': 'جارٍ قراءة الأدوات…',
  'chatTools.allOf': 'كل أدوات {name}',
  'chatTools.noTools': 'لا أدوات معروفة بعد',
  'chatTools.off': 'متوقف',
  'chatTools.idle': 'يبدأ عند الحاجة',
  'chatTools.starting': 'جارٍ البدء…',
  'chatTools.failed': 'فشل: {reason}',
  'chatTools.needs_sign_in': 'يحتاج إلى تسجيل الدخول',
  'chatTools.toolOff': 'متوقفة. تتصل بالإنترنت.',
  'chatTools.turnOn': 'تشغيله من الإعدادات…',
  'chatTools.fix': 'فتح الإعدادات…',
  'chatTools.add': 'إضافة خوادم من الإعدادات…',
  'chatTools.onlyOwn': 'لا تتوفر إلا أدوات Ponder نفسه. الخوادم تضيف المزيد.',
  'chatTools.asks': 'تسأل كل مرة',
  'chatTools.denied': 'لا تعمل أبدًا',
  'chatTools.gone': 'لم تعد متوفرة',
});
