/** The actions of a message that the window does. */

import { createContext } from 'svelte';

import type { ChatSettings } from '../../../bindings/ChatSettings';
import type { LocalModel } from '../../../bindings/LocalModel';
import type { StoredMessage } from '../../../bindings/StoredMessage';
import type { Thinking } from '../../../bindings/Thinking';
import type { ThinkingControl } from '../../../bindings/ThinkingControl';
import { otherThinking } from '../../../features/chatSettings/thinking';
import { t } from '../../../locales';
import type { FileContent } from '../../../shared/files';
import type { ImageContent } from '../../../shared/messageParts';

export interface MessageActions {
  /** Ends the answer that is being written; `null` while that is being done. */
  readonly stop: (() => void) | null;
  answerNow: (message: string) => void;
  continueAnswer: (message: string) => void;
  regenerate: (message: string) => void;
  /** Goes on with one of two answers. */
  keep: (message: string) => void;
  /** Shows the branch with this message, `step` versions before or after the one that is shown. */
  showBranch: (message: string, step: number) => void;
  fork: (message: StoredMessage) => void;
  /** Shows an image whole. */
  show: (image: ImageContent) => void;
  /** Shows the text of a file. */
  read: (file: FileContent) => void;
}

/** The actions of the messages in this window. */
export const [useMessageActions, provideMessageActions] = createContext<MessageActions>();

/** Another way to have a question answered. */
export interface Alternative {
  label: string;
  change: Partial<ChatSettings>;
}

/** The other ways to ask for an answer: the thinking setting that it was not asked with, and other models. */
export function alternativesOf(
  { model, settings }: StoredMessage,
  control: ThinkingControl | null,
  models: readonly LocalModel[],
): Alternative[] {
  const ways = otherThinking(control, settings?.thinking ?? null).map((thinking): Alternative => ({
    label: thinkingLabel(thinking),
    change: { model, thinking },
  }));
  const usable = models.filter(
    ({ kind, problem, reference }) => kind === 'chat' && problem === null && reference !== model,
  );
  const named = usable.map(({ name, reference }): Alternative => ({ label: name, change: { model: reference } }));
  return [...ways, ...named];
}

function thinkingLabel(thinking: Thinking): string {
  if (thinking === 'on') return t('regenerate.thinking');
  if (thinking === 'off') return t('regenerate.noThinking');
  return t('regenerate.level', { level: t(`settings.thinking.${thinking}`) });
}
