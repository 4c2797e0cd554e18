/** How an answer ended, in words, and whether it can go on. */

import type { EndedBy } from '../bindings/EndedBy';
import type { StoredMessage } from '../bindings/StoredMessage';
import { t } from '../messages';

/** The rule that ended an answer, as a sentence. */
export function finishReasonText(rule: EndedBy): string {
  switch (rule.rule) {
    case 'stop_token':
      return t('finish.stopToken', { text: rule.text });
    case 'stop_text':
      return t('finish.stopText', { text: rule.text });
    case 'token_limit':
      return t('finish.tokenLimit');
    case 'context':
      return t('finish.context');
    case 'repetition':
      return t('finish.repetition');
    case 'cancelled':
      return t('finish.cancelled');
  }
}

/** What stands behind the figures below an answer: its tokens, and the rule that ended it. */
export function usageDetails({ usage, ended_by }: Pick<StoredMessage, 'usage' | 'ended_by'>): string {
  const lines: string[] = [];
  if (usage) {
    const [read, written, thought] = [usage.prompt_tokens, usage.completion_tokens, usage.thinking_tokens];
    lines.push(thought > 0 ? t('usage.tokensThought', { read, written, thought }) : t('usage.tokens', { read, written }));
  }
  if (ended_by) lines.push(finishReasonText(ended_by));
  return lines.join('\n');
}

/** Whether an answer ended early, has something that more can be added to, and more could come: asking for the same again does not
 * help against a full context or a model that changed. */
export function canContinue({ state, finish_reason, ended_by, error, parts }: StoredMessage): boolean {
  switch (state) {
    case 'stopped':
    case 'interrupted':
      return parts.length > 0;
    case 'failed':
      return parts.length > 0 && error?.code !== 'context_full' && error?.code !== 'bad_request';
    case 'complete':
      return finish_reason === 'length' && ended_by?.rule !== 'context' && ended_by?.rule !== 'repetition';
    case 'streaming':
      return false;
  }
}
