/** The commands of the chat window that apply now, for menus. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import { COMMANDS, type Command } from '../../shared/shortcuts';
import type { Conversation } from './conversation.svelte';

interface State {
  conversation: Conversation;
  /** The open chat, as the list has it. */
  summary: ChatSummary | null;
  /** True if an answer is thinking, so that *Answer now* applies. */
  thinking: boolean;
  /** True if the model has a Thinking switch. */
  switches: boolean;
}

export function availableCommands({ conversation, summary, thinking, switches }: State): Command[] {
  const { running, lastAnswer, messages } = conversation;
  const can: Partial<Record<Command, boolean>> = {
    'new-chat': true,
    'temporary-chat': true,
    search: true,
    palette: true,
    import: true,
    composer: true,
    'chat-settings': true,
    'two-answers': true,
    find: messages.length > 0,
    export: messages.length > 0 && summary !== null,
    regenerate: lastAnswer !== null && !running,
    stop: running !== null && !running.stopping,
    'answer-now': thinking,
    thinking: switches,
  };
  return COMMANDS.filter((command) => can[command]);
}
