/** What the page about Ponder says. */
export const about = {
  'settings.page.about': 'About',
  'settings.about.version': 'Version {version}',
  'settings.about.licence': 'Free software under the Apache License 2.0. © 2026 The Ponder authors.',
  'settings.about.built': 'Built with',
  'settings.about.builtText': 'Work of many others is part of Ponder. Each has its own licence; choose one to read it.',
  'settings.about.search': 'Search names and licences',
  'settings.about.none': 'Nothing has that name or licence.',
  'settings.about.all': { one: 'Show all {count}', other: 'Show all {count}' },
  'settings.about.noList': 'This build was made without the list of licences; packages have it.',
} as const;
