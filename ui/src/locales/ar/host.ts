import { translation } from '../en/catalogue';

/** Errors and notices of the host, by their code. `{message}` is the host’s own sentence; one code may have many. */
export const host = translation({

  'notice.thought_while_off': 'فكّر النموذج مع أن التفكير متوقف. تفكيره ليس جزءًا من الإجابة.',
  'notice.thinking_truncated': 'انتهت الإجابة أثناء التفكير.',
  'notice.thinking_ended': 'أُنهي التفكير هنا يدويًا.',
  'notice.thinking_ended.budget': {
    one: 'أُنهي التفكير بعد رمز واحد، وهو حده.',
    two: 'أُنهي التفكير بعد رمزين، وهما حده.',
    few: 'أُنهي التفكير بعد {count} رموز، وهي حده.',
    many: 'أُنهي التفكير بعد {count} رمزًا، وهي حده.',
    other: 'أُنهي التفكير بعد {count} رمز، وهي حده.',
  },
  'notice.broken_tool_call': 'لم يُكمل النموذج استدعاء أداة. يظهر الاستدعاء كنص.',
  'notice.unknown_tool': 'استدعى النموذج {name}، وهي أداة غير متاحة له. يظهر الاستدعاء كنص.',
  'notice.repeats': 'الإجابة تكرر نفسها.',
  'notice.repetition': 'ظلت الإجابة تكرر نفسها، فأُوقفت.',
  'notice.kv_bits': {
    one: 'طبقة واحدة لا يمكن تكميمها وتبقى بدقة كاملة.',
    two: 'طبقتان لا يمكن تكميمهما وتبقيان بدقة كاملة.',
    few: '{count} طبقات لا يمكن تكميمها وتبقى بدقة كاملة.',
    other: '{count} طبقة لا يمكن تكميمها وتبقى بدقة كاملة.',
  },
  'notice.thinking_switch_ignored': 'هذا الخادم يتجاهل إعداد التفكير. اطلب في رسالتك تفكيرًا أكثر أو أقل.',
  'notice.thinking_budget_ignored': 'الخوادم لا تدعم حدًّا للتفكير.',
  'notice.field_refused': 'رفض الخادم «{field}»، فلم يُرسَل.',
  'notice.media_not_seen': 'هذا النموذج لا يدعم الملفات. وصلته أسماؤها فقط.',
  'notice.image_left_out': {
    one: 'لم تُرسل صورة واحدة إلى النموذج. وصله اسمها فقط.',
    two: 'لم تُرسل صورتان إلى النموذج. وصله اسماهما فقط.',
    few: 'لم تُرسل {count} صور إلى النموذج. وصلته أسماؤها فقط.',
    other: 'لم تُرسل {count} صورة إلى النموذج. وصلته أسماؤها فقط.',
  },
  'notice.image_resized': 'وصلت {name} إلى النموذج بحجم {width} × {height} بدلًا من {original_width} × {original_height} بكسل.',
  'notice.image_animated': '{name} صورة متحركة. وصل إلى النموذج إطارها الأول فقط.',
  'notice.draft_model_unused': 'لم يُستخدم نموذج المسودة: {reason}.',
  'notice.unknown': '{message}',
});
