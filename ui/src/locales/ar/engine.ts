import { translation } from '../en/catalogue';

/** Loaded models, and notices about memory, heat and power. */
export const engine = translation({
  'engine.loaded': 'النماذج المحمّلة',
  'engine.loadedNone': 'لا نموذج محمّل. رسالتك التالية تحمّل نموذجًا.',
  'engine.loadedNote': '{size} · سياق {context} · {device}',
  'engine.unloadNow': 'إخراج',
  'engine.unloadNowOf': 'إخراج {name}',
  'engine.unloaded': 'أُخرج {name}.',
  'engine.memory': 'الذاكرة المستخدمة: {size}',
  'engine.unload': 'إخراج النماذج الخاملة',
  'engine.unloadAbout': 'يحرّر الذاكرة حين لا يُستخدم نموذج طوال هذه المدة.',
  'engine.unload.never': 'أبدًا',
  'engine.minutes': { one: 'دقيقة واحدة', two: 'دقيقتان', few: '{count} دقائق', other: '{count} دقيقة' },
  'engine.hours': { one: 'ساعة واحدة', two: 'ساعتان', few: '{count} ساعات', other: '{count} ساعة' },
  'engine.threads': 'خيوط المعالج',
  'engine.threadsAbout': 'عدد الأنوية التي تحسب عند غياب معالج الرسوميات. يستخدم «تلقائي» خيطًا واحدًا لكل نواة.',
  'engine.threadsAuto': 'تلقائي',
  'engine.threadCount': { one: 'خيط واحد', two: 'خيطان', few: '{count} خيوط', other: '{count} خيطًا' },
  'engine.processor': 'المعالج ({instructions}) · {threads} · تنشيطات بدقة {bits} بت',
  'engine.prefix': 'ذاكرة المطالبات المؤقتة',
  'engine.prefixAbout': 'تحتفظ بالمطالبات المعالَجة كي تبدأ الرسالة التالية أسرع. بالميغابايت لكل نموذج؛ القيمة 0 توقفها.',
  'engine.prefixAuto': 'تلقائي',

  'power.modelReleased': 'قلّت الذاكرة، فحرّر Ponder منها {size}. رسالتك التالية تحمّل النموذج من جديد.',
  'power.cacheReleased': 'قلّت الذاكرة، فحرّر Ponder منها {size}. رسالتك التالية تعالج محادثتها من جديد.',
  'power.slowed.low_power': 'هذا الرد أبطأ لأن الحاسوب يوفّر الطاقة.',
  'power.slowed.heat': 'هذا الرد أبطأ لأن الحاسوب ساخن.',
  'power.keepAwake': 'إبقاء الحاسوب مستيقظًا أثناء العمل',
});
