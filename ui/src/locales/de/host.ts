import { translation } from '../en/catalogue';

/** Errors and notices of the host, by their code. `{message}` is the host’s own sentence; one code may have many. */
export const host = translation({

  'notice.thought_while_off': 'Das Modell hat nachgedacht, obwohl Nachdenken ausgeschaltet ist. Das Nachdenken ist nicht Teil der Antwort.',
  'notice.thinking_truncated': 'Die Antwort endete während des Nachdenkens.',
  'notice.thinking_ended': 'Das Nachdenken wurde hier von Hand beendet.',
  'notice.thinking_ended.budget': { one: 'Das Nachdenken endete bei seinem Budget von {count} Token.', other: 'Das Nachdenken endete bei seinem Budget von {count} Tokens.' },
  'notice.broken_tool_call': 'Das Modell hat einen Werkzeugaufruf nicht beendet. Er erscheint als Text.',
  'notice.unknown_tool': 'Das Modell hat {name} aufgerufen, obwohl es dieses Werkzeug nicht hat. Der Aufruf erscheint als Text.',
  'notice.repeats': 'Die Antwort wiederholt sich.',
  'notice.repetition': 'Die Antwort wiederholte sich immer weiter und wurde gestoppt.',
  'notice.kv_bits': {
    one: '{count} Schicht lässt sich nicht quantisieren und behält volle Genauigkeit.',
    other: '{count} Schichten lassen sich nicht quantisieren und behalten volle Genauigkeit.',
  },
  'notice.thinking_switch_ignored': 'Dieser Endpunkt ignoriert die Einstellung „Nachdenken“. In der Nachricht um mehr oder weniger Nachdenken bitten.',
  'notice.thinking_budget_ignored': 'Endpunkte unterstützen kein Denkbudget.',
  'notice.field_refused': 'Der Endpunkt lehnte „{field}“ ab, deshalb wurde es weggelassen.',
  'notice.media_not_seen': 'Dieses Modell unterstützt keine Dateien. Es erhielt nur ihre Namen.',
  'notice.image_left_out': {
    one: '{count} Bild wurde nicht an das Modell gesendet. Es erhielt nur den Namen.',
    other: '{count} Bilder wurden nicht an das Modell gesendet. Es erhielt nur die Namen.',
  },
  'notice.image_resized': 'Das Modell erhielt {name} mit {width} × {height} statt {original_width} × {original_height} Pixeln.',
  'notice.image_animated': '{name} ist animiert. Das Modell erhielt nur das erste Einzelbild.',
  'notice.draft_model_unused': 'Das Entwurfsmodell wurde nicht benutzt: {reason}.',
  'notice.unknown': '{message}',
});
