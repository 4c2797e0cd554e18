import { translation } from '../en/catalogue';

/** Newer versions of the app. */
export const update = translation({
  'update.title': 'التحديثات',
  'update.notAsked': 'لا يبحث Ponder عن تحديثات إلا عند طلبك.',
  'update.ask': 'البحث عن تحديثات',
  'update.asking': 'جارٍ البحث عن تحديثات…',
  'update.newest': 'Ponder محدّث.',
  'update.available': 'Ponder {version} متاح',
  'update.install': 'تنزيل',
  'update.fetching': 'جارٍ تنزيل التحديث',
  'update.stop': 'إلغاء',
  'update.installed': 'Ponder {version} جاهز. أعد التشغيل للتحديث.',
  'update.restart': 'إعادة التشغيل الآن',
  'update.notes': 'ما الجديد',
});
