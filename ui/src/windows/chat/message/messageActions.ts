/** The actions of a message, as its tools call them. */

import type { ChatSettings } from '../../../bindings/ChatSettings';
import type { DeleteScope } from '../../../bindings/DeleteScope';
import type { LocalModel } from '../../../bindings/LocalModel';
import type { StoredMessage } from '../../../bindings/StoredMessage';
import type { ThinkingControl } from '../../../bindings/ThinkingControl';
import { t } from '../../../locales';

/** Another way to have a question answered. */
export interface Alternative {
  label: string;
  change: Partial<ChatSettings>;
}

export interface MessageActions {
  /** The message that is being written over. */
  editing: string | null;
  edit: (message: string | null) => void;
  /** Stores an edited version of a message. */
  write: (message: StoredMessage, text: string) => void;
  remove: (message: StoredMessage, scope: DeleteScope) => void;
  fork: (message: StoredMessage) => void;
  /** Answers again, asked otherwise. */
  again: (message: string, change: Partial<ChatSettings>) => void;
  /** In which other ways this answer could be asked for. */
  alternatives: (message: StoredMessage) => Alternative[];
  /** The display name of a model. */
  modelName: (reference: string) => string;
}

/** The number of other models in the menu. */
const MODELS = 5;

/** The other ways to ask for an answer: the thinking setting that it was not asked with, and other models. */
export function alternativesOf(
  message: StoredMessage,
  control: ThinkingControl | null,
  models: readonly LocalModel[],
): Alternative[] {
  const thinking = message.settings?.thinking ?? null;
  const off: Alternative = { label: t('message.againNoThinking'), change: { model: message.model, thinking: 'off' } };
  const ways: Alternative[] = [];
  if (control?.kind === 'switch') {
    const on = thinking === null ? control.default_on : thinking !== 'off';
    ways.push(on ? off : { label: t('message.againThinking'), change: { model: message.model, thinking: 'on' } });
  } else if (control?.kind === 'levels') {
    for (const level of control.levels) {
      if (level !== thinking)
        ways.push({
          label: t('message.againLevel', { level: t(`settings.thinking.${level}`) }),
          change: { model: message.model, thinking: level },
        });
    }
    if (control.off && thinking !== 'off') ways.push(off);
  }
  const usable = models.filter(
    (model) => model.kind === 'chat' && model.problem === null && model.reference !== message.model,
  );
  const named = usable.slice(0, MODELS).map((model): Alternative => ({
    label: t('message.againModel', { model: model.name }),
    change: { model: model.reference },
  }));
  return [...ways, ...named];
}
