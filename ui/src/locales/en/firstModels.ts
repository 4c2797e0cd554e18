/** The strengths of the recommended first models, by the note of the host. */
export const firstModels = {
  'firstModel.tiny': 'Very small and very fast, for trying things out.',
  'firstModel.small': 'Small and fast, for short responses and simple tasks.',
  'firstModel.direct': 'A capable all-rounder that responds right away, without thinking.',
  'firstModel.all_rounder': 'A good all-rounder that can think before it responds.',
  'firstModel.careful': 'Careful responses and good German, with optional thinking.',
  'firstModel.reasoning': 'Fast for its size and strong at reasoning, with effort levels.',
  'firstModel.broad': 'Broad knowledge, and fast for its size.',
  'firstModel.thorough': 'Thorough but slow, for hard problems.',
  'firstModel.long_texts': 'Large but fast, and good with long texts.',
  'firstModel.strongest': 'One of the strongest open models, for Macs with a lot of memory.',
} as const;
