/**
 * The uses of the recommended first models, as in the host’s list of them (`hub/src/huggingface/recommended.json`),
 * which the command line shows.
 */
export const firstModels = {
  'firstModel.mlx-community/Qwen3-0.6B-4bit': 'Very small and very quick; for trying things out.',
  'firstModel.mlx-community/Qwen3-1.7B-4bit': 'Small and quick; short answers and simple tasks.',
  'firstModel.mlx-community/Qwen3-4B-Instruct-2507-4bit': 'A capable all-rounder that answers at once, without thinking first.',
  'firstModel.mlx-community/Qwen3-8B-4bit': 'A good all-rounder that can think before it answers.',
  'firstModel.mlx-community/Qwen3-14B-4bit': 'Careful answers and good German; it can think before it answers.',
  'firstModel.mlx-community/gpt-oss-20b-MXFP4-Q8': 'Quick for its size, strong at reasoning; effort in three levels.',
  'firstModel.mlx-community/Qwen3-30B-A3B-Instruct-2507-4bit': 'Knows much and still answers quickly, because few of its parts work at a time.',
  'firstModel.mlx-community/Qwen3-32B-4bit': 'Thorough and slow; for hard questions with time to think.',
  'firstModel.mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit': 'A large model that stays quick and reads long texts.',
  'firstModel.mlx-community/gpt-oss-120b-MXFP4-Q8': 'Among the strongest open models; for Macs with much memory.',
} as const;
