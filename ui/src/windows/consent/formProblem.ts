/** The fault in the value of a form's field, in a sentence that says what to do. */

import type { ElicitationInput } from '../../bindings/ElicitationInput';
import type { FieldProblemKind } from '../../bindings/FieldProblemKind';
import { t } from '../../locales';

export function formProblem(input: ElicitationInput, problem: FieldProblemKind): string {
  if (problem === 'missing') return t('elicitation.missing');
  switch (input.kind) {
    case 'text':
      if (problem === 'too_little' && input.min !== null) return t('elicitation.tooShort', { count: input.min });
      if (problem === 'too_much' && input.max !== null) return t('elicitation.tooLong', { count: input.max });
      if (problem === 'bad_format' && input.format !== null) return t(`elicitation.format.${input.format}`);
      return t('elicitation.wrong');
    case 'number':
      if (problem === 'wrong_kind') return t(input.whole ? 'consent.badInteger' : 'consent.badNumber');
      if (problem === 'too_little' && input.min !== null) return t('elicitation.atLeast', { value: input.min });
      return input.max === null ? t('elicitation.tooLarge') : t('elicitation.atMost', { value: input.max });
    case 'some':
      if (problem === 'too_little' && input.min !== null) return t('elicitation.tooFew', { count: input.min });
      if (problem === 'too_much' && input.max !== null) return t('elicitation.tooMany', { count: input.max });
      return t('elicitation.wrong');
    case 'one':
    case 'boolean':
      return t('elicitation.wrong');
  }
}
