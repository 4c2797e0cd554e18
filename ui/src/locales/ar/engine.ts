import { translation } from '../en/catalogue';

/** The page about the engine, and notices about memory, heat and power. */
export const engine = translation({
  'engine.loaded': 'النماذج في الذاكرة',
  'engine.loadedNone': 'لا نموذج في الذاكرة. السؤال الأول يحمّل نموذجًا.',
  'engine.loadedNote': '{size} · سياق {context} · {device}',
  'engine.unloadNow': 'تفريغ الآن',
  'engine.unloadNowOf': 'تفريغ الآن: {name}',
  'engine.unloaded': 'أُفرغ {name} من الذاكرة. إجابته التالية تحمّله من جديد.',
  'engine.memory': 'الذاكرة المستخدمة: {size}',
  'engine.unload': 'تفريغ النماذج الخاملة',
  'engine.unloadAbout': 'النموذج الذي لم يسأله أحد طوال هذه المدة يُفرَّغ من الذاكرة؛ إجابته التالية تحمّله من جديد.',
  'engine.unload.never': 'أبدًا',
  'engine.minutes': { one: 'دقيقة واحدة', two: 'دقيقتان', few: '{count} دقائق', other: '{count} دقيقة' },
  'engine.hours': { one: 'ساعة واحدة', two: 'ساعتان', few: '{count} ساعات', other: '{count} ساعة' },
  'engine.prefix': 'ذاكرة للمحادثات المقروءة',
  'engine.prefixAbout': 'ما يُحفظ لا يُقرأ من جديد للسؤال التالي. لكل نموذج، بالميغابايت؛ 0 لا يحفظ شيئًا.',
  'engine.prefixAuto': 'تلقائي',

  'power.modelReleased': 'قلّت الذاكرة المتاحة، فأعاد Ponder منها {size}. السؤال التالي يحمّل النموذج من جديد.',
  'power.cacheReleased': 'قلّت الذاكرة المتاحة، فأعاد Ponder منها {size}. السؤال التالي يقرأ محادثته من جديد.',
  'power.slowed.low_power': 'الحاسوب يوفّر الطاقة، فتأتي هذه الإجابة أبطأ.',
  'power.slowed.heat': 'الحاسوب ساخن وقد أبطأ، فتأتي هذه الإجابة أبطأ.',
  'power.keepAwake': 'إبقاء الحاسوب مستيقظًا',
  'power.keepAwakeText': 'أثناء كتابة إجابة أو تنزيل نموذج لا يدخل الحاسوب في السكون من نفسه. إغلاق الغطاء أو اختيار السكون يعملان كالعادة.',
});
