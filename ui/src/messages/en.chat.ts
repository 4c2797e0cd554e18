/** Texts about links, models that are gone, and what can be done with a message. */
export const chat = {
  'link.asks': 'Open this link?',
  'link.says': 'The link says:',
  'link.leads': 'It leads to:',
  'link.opens': 'Open {host}',
  'link.keep': 'Stay here',
  'link.odd': 'This is no address that Ponder opens: {address}',

  'gone.text': 'The model of this chat, {name}, is no longer on this computer.',
  'gone.mark': '{name} is no longer here',
  'gone.getAgain': 'Get it again',
  'gone.useAnother': 'Use another',

  'message.copy': 'Copy question',
  'message.quote': 'Quote',
} as const;
