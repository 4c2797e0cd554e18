import { translation } from '../en/catalogue';

/** Actions on a message, and the branches of a chat. */
export const message = translation({
  'message.editQuestion': 'تعديل الرسالة',
  'message.editAnswer': 'تعديل الإجابة',
  'message.editing': 'نص هذه الرسالة',
  'message.sendEdited': 'إرسال',
  'message.keepEdited': 'حفظ',
  'message.cancel': 'إلغاء',
  'message.editNote': 'تبقى الصيغة السابقة وردودها محفوظة.',
  'message.more': 'المزيد لهذه الرسالة',
  'message.answer': 'إنشاء إجابة',
  'message.copyText': 'نسخ كنص',
  'message.fork': 'تفريع في محادثة جديدة',
  'message.forkTitle': '{title} (فرع)',
  'message.deleteTurn': 'حذف الرسالة والإجابة',
  'message.deleteBranch': 'حذف هذا وكل ما يليه',
  'message.deleted': 'تم الحذف. يمكن استعادته خلال 30 يومًا.',
  'message.edited': 'مُعدّل يدويًا',
  'message.byModel': '{model} · {when}',
  'message.unread': 'إجابة جديدة',
  'message.copyTable': 'نسخ الجدول',
  'message.wrap': 'التفاف الأسطر',
  'message.copy': 'نسخ الرسالة',
  'message.quote': 'اقتباس',

  'branch.questions': 'الصيغ',
  'branch.previousQuestion': 'الصيغة السابقة',
  'branch.nextQuestion': 'الصيغة التالية',
});
