/** Newer versions of the app. */
export const update = {
  'update.title': 'Updates',
  'update.notAsked': 'Ponder checks for updates only when you ask.',
  'update.ask': 'Check for updates',
  'update.asking': 'Checking for updates…',
  'update.newest': 'Ponder is up to date.',
  'update.available': 'Ponder {version} is available',
  'update.install': 'Download',
  'update.fetching': 'Downloading update',
  'update.stop': 'Cancel',
  'update.installed': 'Ponder {version} is ready. Restart to update.',
  'update.restart': 'Restart now',
  'update.notes': 'What’s new',
} as const;
