import { translation } from '../en/catalogue';

/** The strengths of the recommended first models, by the note of the host. */
export const firstModels = translation({
  'firstModel.tiny': 'صغير جدًا وسريع جدًا، للتجربة.',
  'firstModel.small': 'صغير وسريع، للإجابات القصيرة والمهام البسيطة.',
  'firstModel.direct': 'نموذج متعدد المهارات يجيب فورًا دون تفكير مسبق.',
  'firstModel.all_rounder': 'نموذج جيد متعدد المهارات يستطيع التفكير قبل الإجابة.',
  'firstModel.careful': 'إجابات متأنية وألمانية جيدة، مع تفكير اختياري.',
  'firstModel.reasoning': 'سريع قياسًا بحجمه وقوي في الاستدلال، مع مستويات للجهد.',
  'firstModel.broad': 'معرفة واسعة، وسريع قياسًا بحجمه.',
  'firstModel.thorough': 'دقيق لكنه بطيء، للمسائل الصعبة.',
  'firstModel.long_texts': 'كبير لكنه سريع، وجيد مع النصوص الطويلة.',
  'firstModel.strongest': 'من أقوى النماذج المفتوحة، لأجهزة Mac ذات الذاكرة الكبيرة.',
});
