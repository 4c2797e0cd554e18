import { translation } from '../en/catalogue';

/** Notes about the user, which models are told. */
export const notes = translation({
  'notes.title': 'ملاحظات شخصية',
  'notes.about': 'ترى النماذج هذه السطور في كل محادثة خارج المشاريع. يمكن للنماذج اقتراح سطور تؤكدها أنت.',
  'notes.projectNote': 'ترى النماذج هذه السطور في كل محادثات هذا المشروع. يمكن للنماذج اقتراح سطور تؤكدها أنت.',
  'notes.loading': 'جارٍ تحميل الملاحظات…',
  'notes.none': 'لا توجد ملاحظات بعد',
  'notes.text': 'ملاحظة',
  'notes.new': 'ملاحظة جديدة',
  'notes.example': 'أستخدم الوحدات المترية.',
  'notes.add': 'إضافة',
  'notes.remove': 'حذف الملاحظة «{text}»',
  'notes.removed': 'تم حذف الملاحظة',
  'notes.suggested': 'اقترحها نموذج',
});
