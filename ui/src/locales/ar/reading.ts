import { translation } from '../en/catalogue';

/** Reading all documents of a chat: its cost, its progress. */
export const reading = translation({
  'reading.parts': { zero: 'لا أجزاء', one: 'جزء واحد', two: 'جزأين', few: '{count} أجزاء', many: '{count} جزءًا', other: '{count} جزء' },
  'reading.cost': 'المقروء: {passages} في {parts}، نحو {tokens}',
  'reading.time': 'المدة المقدّرة: {duration}',
  'reading.open': 'قراءة كل شيء…',
  'reading.openNote': 'للرسائل التي تحتاج إلى كل المستندات، مثل العدّ أو التلخيص.',
  'reading.title': 'قراءة كل المستندات؟',
  'reading.text': 'يقرأ النموذج كل مستند في الخلفية ويكتب ملاحظات لرسالتك. تعتمد إجابته على هذه الملاحظات.',
  'reading.remote': 'تُرسل كل المستندات إلى مزوّد هذا النموذج.',
  'reading.noMessage': 'اكتب رسالة أولًا.',
  'reading.counting': 'جارٍ عدّ المقاطع…',
  'reading.confirm': 'قراءة كل شيء',
  'reading.cancel': 'إلغاء',
  'reading.progress': 'جارٍ قراءة كل المستندات: {done} من {total}',
  'reading.begins': 'جارٍ قراءة كل المستندات…',
  'reading.stop': 'إيقاف القراءة',
});
