import { translation } from '.';

/** What the page about Ponder says. */
export const about = translation({
  'settings.page.about': 'حول',
  'settings.about.version': 'الإصدار {version}',
  'settings.about.licence': 'برنامج حر برخصة أباتشي 2.0. \u2066© 2026 The Ponder authors.\u2069',
  'settings.about.built': 'مبني باستخدام',
  'settings.about.builtText': 'في Ponder عمل كثيرين غيرنا، ولكل جزء رخصته؛ اختيار جزء يعرض رخصته.',
  'settings.about.search': 'البحث في الأسماء والرخص',
  'settings.about.none': 'لا شيء بهذا الاسم أو بهذه الرخصة.',
  'settings.about.all': { two: 'عرض الاثنين', few: 'عرض كل الأجزاء ({count})', other: 'عرض كل الأجزاء ({count})' },
  'settings.about.noList': 'بُنيت هذه النسخة من دون قائمة الرخص؛ وهي موجودة في الحزم.',
});
