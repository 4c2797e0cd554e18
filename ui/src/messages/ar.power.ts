import { translation } from '.';

/** The texts about the computer's memory, heat and power. */
export const power = translation({
  'power.modelReleased': 'قلّت الذاكرة المتاحة، فأعاد Ponder منها {size}. السؤال التالي يحمّل النموذج من جديد.',
  'power.cacheReleased': 'قلّت الذاكرة المتاحة، فأعاد Ponder منها {size}. السؤال التالي يقرأ محادثته من جديد.',
  'power.slowed.low_power': 'الحاسوب يوفّر الطاقة، فتأتي هذه الإجابة أبطأ.',
  'power.slowed.heat': 'الحاسوب ساخن وقد أبطأ، فتأتي هذه الإجابة أبطأ.',
  'power.keepAwake': 'إبقاء الحاسوب مستيقظًا',
  'power.keepAwakeText': 'أثناء كتابة إجابة أو تنزيل نموذج لا يدخل الحاسوب في السكون من نفسه. إغلاق الغطاء أو اختيار السكون يعملان كالعادة.',
});
