import { translation } from '../en/catalogue';

/**
 * The strengths of the recommended first models, as in the host’s list of them (`hub/src/huggingface/recommended.json`), which
 * the command line shows.
 */
export const firstModels = translation({
  'firstModel.mlx-community/Qwen3-0.6B-4bit': 'صغير جدًا وسريع جدًا، للتجربة.',
  'firstModel.mlx-community/Qwen3-1.7B-4bit': 'صغير وسريع، للإجابات القصيرة والمهام البسيطة.',
  'firstModel.mlx-community/Qwen3-4B-Instruct-2507-4bit': 'نموذج متعدد المهارات يجيب فورًا دون تفكير مسبق.',
  'firstModel.mlx-community/Qwen3-8B-4bit': 'نموذج جيد متعدد المهارات يستطيع التفكير قبل الإجابة.',
  'firstModel.mlx-community/Qwen3-14B-4bit': 'إجابات متأنية وألمانية جيدة، مع تفكير اختياري.',
  'firstModel.mlx-community/gpt-oss-20b-MXFP4-Q8': 'سريع قياسًا بحجمه وقوي في الاستدلال، مع مستويات للجهد.',
  'firstModel.mlx-community/Qwen3-30B-A3B-Instruct-2507-4bit': 'معرفة واسعة، وسريع قياسًا بحجمه.',
  'firstModel.mlx-community/Qwen3-32B-4bit': 'دقيق لكنه بطيء، للمسائل الصعبة.',
  'firstModel.mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit': 'كبير لكنه سريع، وجيد مع النصوص الطويلة.',
  'firstModel.mlx-community/gpt-oss-120b-MXFP4-Q8': 'من أقوى النماذج المفتوحة، لأجهزة Mac ذات الذاكرة الكبيرة.',
});
