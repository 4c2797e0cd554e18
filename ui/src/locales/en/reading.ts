/** Reading all documents of a chat: its cost, its progress. */
export const reading = {
  'reading.parts': { one: '{count} part', other: '{count} parts' },
  'reading.cost': 'Reads {passages} in {parts}, about {tokens}',
  'reading.time': 'Estimated time: {duration}',
} as const;
