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
  'composer.resources': 'من خادم…',
  'composer.documents': 'المستندات…',
  'composer.compare': 'مقارنة الإجابات…',
  'composer.tools': 'الأدوات…',
  'composer.budget': 'حد التفكير…',

  'resources.title': 'إرفاق من خادم',
  'resources.search': 'البحث في الموارد',
  'resources.asking': 'جارٍ سؤال الخوادم…',
  'resources.none': 'لا موارد لدى أي خادم مفعّل. تُفعَّل الخوادم من الإعدادات › الأدوات.',
  'resources.notFound': 'لا نتائج مطابقة.',
  'resources.attach': 'إرفاق',
  'resources.more': { zero: 'لا مزيد', one: 'مورد آخر؛ ابحث عنه', two: 'موردان آخران؛ ابحث عنهما', few: '{count} موارد أخرى؛ ابحث عنها', many: '{count} موردًا آخر؛ ابحث عنها', other: '{count} مورد آخر؛ ابحث عنها' },

  'prompts.more': 'طلب قوالب من الخوادم…',
  'prompts.optional': 'اختياري',
  'prompts.insert': 'إدراج',

  'toolsChanged.note': 'تغيّرت الأدوات: {list}',
  'toolsChanged.added': '{name} جديدة',
  'toolsChanged.removed': '{name} متوقفة',
  'toolsChanged.changed': '{name} لها وصف جديد',
  'toolsChanged.use': 'استخدام الأدوات الجديدة',
  'toolsChanged.cost': 'تُقرأ المحادثة عندئذٍ من جديد.',
});
