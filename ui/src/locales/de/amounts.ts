import { translation } from '../en/catalogue';

/** Sizes, counts and durations. */
export const amounts = translation({
  'amount.bytes': { one: '{count} Byte', other: '{count} Bytes' },
  'amount.kB': '{value} kB',
  'amount.MB': '{value} MB',
  'amount.GB': '{value} GB',
  'amount.TB': '{value} TB',
  'amount.progress': '{done} von {total}',
  'amount.perSecond': '{size}/s',
  'amount.thousands': '{value} k',
  'amount.millions': '{value} Mio.',
  'amount.tokens': { one: '{count} Token', other: '{count} Tokens' },
  'amount.context': '{tokens} Kontext',
  'amount.contextTokens': '{tokens} Tokens',
  'amount.memory': '{total} Speicher · {free} frei',
  'amount.files': { one: '{count} Datei', other: '{count} Dateien' },
  'amount.models': { one: '{count} Modell', other: '{count} Modelle' },

  'time.milliseconds': '{value} ms',
  'time.seconds': '{value} s',
  'time.minutesSeconds': '{minutes} min {seconds} s',
  'time.minutes': '{minutes} min',
  'time.hoursMinutes': '{hours} h {minutes} min',
  'time.justNow': 'gerade eben',
  'time.left.moment': 'noch ein paar Sekunden',
  'time.left.seconds': 'noch {seconds} s',
  'time.left.minutes': 'noch {minutes} min',
  'time.left.hours': 'noch {hours} h',
  'time.left.hoursMinutes': 'noch {hours} h {minutes} min',
  'time.left.days': { one: 'noch {count} Tag', other: 'noch {count} Tage' },
});
