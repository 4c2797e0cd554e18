import { translation } from '.';

/** Texts about the language of the windows. */
export const language = translation({
  'settings.language': 'اللغة',
  'settings.language.text': 'لغة نوافذ Ponder وقوائمه. ما تكتبه النماذج لا يتغير.',
  'settings.language.system': 'لغة النظام',
});
