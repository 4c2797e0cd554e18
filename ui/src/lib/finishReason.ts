/** How an answer ended, in words, and whether it can go on. */

import type { EndedBy } from '../bindings/EndedBy';
import type { StoredMessage } from '../bindings/StoredMessage';
import { count } from './format';

/** The rule that ended an answer, as a sentence. */
export function finishReasonText(rule: EndedBy): string {
  switch (rule.rule) {
    case 'stop_token':
      return `The model ended its turn with ${rule.text}.`;
    case 'stop_text':
      return `It ended at the text “${rule.text}”.`;
    case 'token_limit':
      return 'It ended at its limit of tokens.';
    case 'context':
      return 'It ended because the context is full.';
    case 'repetition':
      return 'It was ended because it repeated itself.';
    case 'cancelled':
      return 'It was stopped.';
  }
}

/** What stands behind the figures below an answer: its tokens, and the rule that ended it. */
export function usageDetails({ usage, ended_by }: Pick<StoredMessage, 'usage' | 'ended_by'>): string {
  const lines: string[] = [];
  if (usage) {
    const thought = usage.thinking_tokens > 0 ? `, ${count(usage.thinking_tokens)} of them thought` : '';
    lines.push(`${count(usage.prompt_tokens)} tokens read, ${count(usage.completion_tokens)} written${thought}.`);
  }
  if (ended_by) lines.push(finishReasonText(ended_by));
  return lines.join('\n');
}

/** Whether an answer ended early, has something that more can be added to, and more could come: asking for the same again does not
 * help against a full context or a model that changed. */
export function canContinue({ state, stop, ended_by, error, parts }: StoredMessage): boolean {
  switch (state) {
    case 'stopped':
    case 'interrupted':
      return parts.length > 0;
    case 'failed':
      return parts.length > 0 && error?.code !== 'context_full' && error?.code !== 'bad_request';
    case 'complete':
      return stop === 'length' && ended_by?.rule !== 'context' && ended_by?.rule !== 'repetition';
    case 'streaming':
      return false;
  }
}
