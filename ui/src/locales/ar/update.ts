import { translation } from '../en/catalogue';

/** Newer versions of the app. */
export const update = translation({
  'update.title': 'الإصدارات الجديدة',
  'update.notAsked': 'لا يبحث Ponder عن إصدارات جديدة إلا عند الطلب.',
  'update.ask': 'البحث عن إصدار جديد',
  'update.asking': 'جارٍ البحث عن إصدار جديد…',
  'update.newest': 'هذا أحدث إصدار.',
  'update.available': 'Ponder {version} متاح',
  'update.install': 'تنزيل',
  'update.fetching': 'جارٍ تنزيل الإصدار الجديد',
  'update.stop': 'إيقاف',
  'update.installed': 'ثُبّت Ponder {version} ويعمل من التشغيل التالي.',
  'update.restart': 'التشغيل الآن',
  'update.notes': 'ما الجديد',
});
