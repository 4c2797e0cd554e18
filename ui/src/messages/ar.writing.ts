import { translation } from '.';

/** The texts about writing a question: what waits, what it costs, snippets. */
export const writing = translation({
  'queue.next': 'التالي:',
  'queue.attached': { one: 'مرفق واحد', two: 'مرفقان', few: '{count} مرفقات', many: '{count} مرفقًا', other: '{count} مرفق' },
  'queue.edit': 'تعديل السؤال التالي',
  'queue.cancel': 'إلغاء السؤال التالي',
  'queue.cancelled': 'لن يُطرح السؤال التالي.',
  'queue.send': 'السؤال بعد هذه الإجابة',

  'composer.tokens': { zero: 'لا رموز', one: 'رمز واحد', two: 'رمزان', few: '{count} رموز', many: '{count} رمزًا', other: '{count} رمز' },
  'composer.tokensFull': 'الرموز {count}، أكثر من المتاح وهو {free}',
  'composer.tokensHint': 'ما يأخذه هذا السؤال من سياق النموذج',

  'snippet.list': 'المقتطفات',
  'settings.page.snippets': 'المقتطفات',
  'settings.snippets.intro': 'نصوص تُكتب كثيرًا. اكتب في السؤال شرطة مائلة والاسم، مثل \u200e/translate، ثم اضغط مفتاح الإدخال.',
  'settings.snippets.name': 'الاسم',
  'settings.snippets.nameExample': 'translate',
  'settings.snippets.text': 'نص {name}',
  'settings.snippets.textNew': 'النص',
  'settings.snippets.textExample': 'ترجم هذا إلى الإنجليزية:',
  'settings.snippets.add': 'إضافة',
  'settings.snippets.remove': 'إزالة {name}',
  'settings.snippets.removed': 'أُزيل /{name}.',
  'settings.snippets.badName': 'الاسم كلمة واحدة من حروف وأرقام وشرطات وشرطات سفلية.',
  'settings.snippets.known': 'هناك مقتطف بهذا الاسم.',
  'settings.snippets.none': 'لا مقتطفات بعد.',
});
