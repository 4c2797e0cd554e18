import { translation } from '../en/catalogue';

/** The preview of a page, a drawing or a diagram that a response wrote. */
export const preview = translation({
  'preview.open': 'فتح المعاينة',
  'preview.kind.html': 'صفحة',
  'preview.kind.svg': 'رسم',
  'preview.kind.mermaid': 'مخطط',
  'preview.versions': 'الإصدارات',
  'preview.version': '{number} من {count}',
  'preview.older': 'إصدار أقدم',
  'preview.newer': 'إصدار أحدث',
  'preview.stop': 'إيقاف المعاينة',
  'preview.run': 'تشغيل مجددًا',
  'preview.reload': 'إعادة التحميل',
  'preview.showCode': 'إظهار الشيفرة',
  'preview.hideCode': 'إظهار المعاينة',
  'preview.save': 'حفظ…',
  'preview.close': 'إغلاق المعاينة',
  'preview.resize': 'عرض المعاينة',
  'preview.stopped': 'أُوقفت المعاينة.',
  'preview.tookFocus': 'أُوقفت المعاينة لأنها استولت على لوحة المفاتيح بينما كنت تعمل في مكان آخر.',
  'preview.ended': 'أُعيد تحميل النافذة بينما كانت معاينة مفتوحة. محادثاتك ومسوداتك محفوظة.',
});
