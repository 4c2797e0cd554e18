/**
 * The uses of the recommended first models, as in the host’s list of them (`hub/src/huggingface/recommended.json`),
 * which the command line shows.
 */
export const firstModels = {
  'firstModel.mlx-community/Qwen3-0.6B-4bit': 'Very small and very fast, for trying things out.',
  'firstModel.mlx-community/Qwen3-1.7B-4bit': 'Small and fast, for short responses and simple tasks.',
  'firstModel.mlx-community/Qwen3-4B-Instruct-2507-4bit': 'A capable all-rounder that responds right away, without thinking.',
  'firstModel.mlx-community/Qwen3-8B-4bit': 'A good all-rounder that can think before it responds.',
  'firstModel.mlx-community/Qwen3-14B-4bit': 'Careful responses and good German, with optional thinking.',
  'firstModel.mlx-community/gpt-oss-20b-MXFP4-Q8': 'Fast for its size and strong at reasoning, with effort levels.',
  'firstModel.mlx-community/Qwen3-30B-A3B-Instruct-2507-4bit': 'Broad knowledge, and fast for its size.',
  'firstModel.mlx-community/Qwen3-32B-4bit': 'Thorough but slow, for hard problems.',
  'firstModel.mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit': 'Large but fast, and good with long texts.',
  'firstModel.mlx-community/gpt-oss-120b-MXFP4-Q8': 'One of the strongest open models, for Macs with a lot of memory.',
} as const;
