import { translation } from '../en/catalogue';

/** Writing a question: the field, the question that waits, snippets. */
export const composer = translation({
  'composer.placeholder': 'اسأل ما تشاء',
  'composer.label': 'سؤالك',
  'composer.send': 'إرسال',
  'composer.stop': 'إيقاف',
  'composer.tokens': { zero: 'لا رموز', one: 'رمز واحد', two: 'رمزان', few: '{count} رموز', many: '{count} رمزًا', other: '{count} رمز' },
  'composer.tokensFull': 'الرموز {count}، أكثر من المتاح وهو {free}',
  'composer.tokensHint': 'ما يأخذه هذا السؤال من سياق النموذج',

  'queue.next': 'التالي:',
  'queue.attached': { one: 'مرفق واحد', two: 'مرفقان', few: '{count} مرفقات', many: '{count} مرفقًا', other: '{count} مرفق' },
  'queue.edit': 'تعديل السؤال التالي',
  'queue.cancel': 'إلغاء السؤال التالي',
  'queue.cancelled': 'لن يُطرح السؤال التالي.',
  'queue.send': 'السؤال بعد هذه الإجابة',

  'snippet.list': 'المقتطفات',
});
