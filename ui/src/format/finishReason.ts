/** The end of an answer, as a text. */

import type { EndedBy } from '../bindings/EndedBy';
import type { StoredMessage } from '../bindings/StoredMessage';
import { t } from '../locales';

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
    case 'endpoint':
      return t('finish.endpoint', { reason: rule.reason });
    case 'cancelled':
      return t('finish.cancelled');
  }
}

/** The tooltip of the figures below an answer: its tokens, and the rule that ended it. */
export function usageDetails({ usage, ended_by }: Pick<StoredMessage, 'usage' | 'ended_by'>): string {
  const lines: string[] = [];
  if (usage) {
    const [read, written, thought] = [usage.prompt_tokens, usage.completion_tokens, usage.thinking_tokens];
    lines.push(thought ? t('usage.tokensThought', { read, written, thought }) : t('usage.tokens', { read, written }));
  }
  if (ended_by) lines.push(finishReasonText(ended_by));
  return lines.join('\n');
}
