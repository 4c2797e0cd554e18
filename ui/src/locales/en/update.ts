/** Newer versions of the app. */
export const update = {
  'update.title': 'New versions',
  'update.notAsked': 'Ponder looks for new versions only when you ask it to.',
  'update.ask': 'Look for a new version',
  'update.asking': 'Looking for a new version …',
  'update.newest': 'This is the newest version.',
  'update.available': 'Ponder {version} is there',
  'update.install': 'Get it',
  'update.fetching': 'Fetching the new version',
  'update.stop': 'Stop',
  'update.installed': 'Ponder {version} is in place and takes over at the next start.',
  'update.restart': 'Start it now',
  'update.notes': 'What is new',
} as const;
