/** Reading all documents of a chat: its cost, its progress. */
export const reading = {
  'reading.parts': { one: '{count} part', other: '{count} parts' },
  'reading.cost': 'Reads {passages} in {parts}, about {tokens}',
  'reading.time': 'Estimated time: {duration}',
  'reading.open': 'Read everything…',
  'reading.openNote': 'For messages that need all documents, like counts or summaries.',
  'reading.title': 'Read all documents?',
  'reading.text': 'The model reads every document in the background and writes notes for your message. Its response uses these notes.',
  'reading.remote': 'All documents are sent to the provider of this model.',
  'reading.noMessage': 'Write a message first.',
  'reading.counting': 'Counting passages…',
  'reading.confirm': 'Read everything',
  'reading.cancel': 'Cancel',
  'reading.progress': 'Reading all documents: {done} of {total}',
  'reading.begins': 'Reading all documents…',
  'reading.stop': 'Stop reading',
} as const;
