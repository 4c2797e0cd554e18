import { translation } from '.';

/** Texts about links, models that are gone, and what can be done with a message. */
export const chat = translation({
  'link.asks': 'فتح هذا الرابط؟',
  'link.says': 'نص الرابط:',
  'link.leads': 'يقود إلى:',
  'link.opens': 'فتح {host}',
  'link.keep': 'البقاء هنا',
  'link.odd': 'هذا عنوان لا يفتحه Ponder: {address}',

  'gone.text': 'نموذج هذه المحادثة، {name}، لم يعد على هذا الحاسوب.',
  'gone.mark': '{name} لم يعد هنا',
  'gone.getAgain': 'تنزيله من جديد',
  'gone.useAnother': 'استخدام غيره',

  'message.copy': 'نسخ السؤال',
  'message.quote': 'اقتباس',
});
