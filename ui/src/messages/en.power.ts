/** The texts about the computer's memory, heat and power. */
export const power = {
  'power.modelReleased': 'Memory got short, so Ponder gave {size} back. The next question loads the model again.',
  'power.cacheReleased': 'Memory got short, so Ponder gave {size} back. The next question reads its chat again.',
  'power.slowed.low_power': 'The computer is saving power, so this answer comes more slowly.',
  'power.slowed.heat': 'The computer is hot and has slowed down, so this answer comes more slowly.',
  'power.keepAwake': 'Keep the computer awake',
  'power.keepAwakeText': 'While an answer is being written or a model is being downloaded, the computer does not go to sleep by itself. Closing the lid or choosing Sleep still works.',
} as const;
