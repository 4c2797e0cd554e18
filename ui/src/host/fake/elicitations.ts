/** The fake host's requests of servers that wait for a person. None comes by itself: tests and examples let them wait. */

import type { ElicitationField } from '../../bindings/ElicitationField';
import type { FieldProblem } from '../../bindings/FieldProblem';
import type { FieldProblemKind } from '../../bindings/FieldProblemKind';
import type { JsonValue } from '../../bindings/serde_json/JsonValue';
import type { WaitingElicitation } from '../../bindings/WaitingElicitation';
import type { Platform } from '../types';
import { refusal } from './shared';
import { refuse, type Store } from './store';
import type { toolCallControls } from './toolCalls';

export const elicitationControls = () => ({
  /** The requests of servers that wait for the person, oldest first. */
  elicited: [] as readonly WaitingElicitation[],
  /** The forms that were sent, as text. */
  sentForms: [] as { id: string; values: string }[],
  /** The addresses that were opened. */
  openedAddresses: [] as string[],
  /** The requests that the person declined. */
  declined: [] as string[],
});

type Controls = Store & ReturnType<typeof elicitationControls> & ReturnType<typeof toolCallControls>;

export function elicitations(host: Controls) {
  const setElicited = (elicited: readonly WaitingElicitation[]): void => {
    host.elicited = elicited;
    for (const listener of host.waitingListeners) queueMicrotask(listener);
  };
  const one = (id: string): WaitingElicitation => {
    const found = host.elicited.find((other) => other.id === id);
    if (!found) throw refusal('not_found', 'the server does not ask for this any more; nothing was sent');
    return found;
  };
  const end = (id: string): void => setElicited(host.elicited.filter((other) => other.id !== id));
  const commands = {
    async waitingElicitations() {
      refuse(host, 'waitingElicitations');
      return [...host.elicited];
    },
    async sendForm(id, values) {
      refuse(host, 'sendForm');
      const { wants } = one(id);
      if (wants.kind !== 'form') throw refusal('bad_request', 'the values of a form are a JSON object');
      const sent: { [name in string]: JsonValue } = JSON.parse(values);
      const problems = wants.fields.flatMap((field) => problemOf(field, sent[field.name]));
      if (problems.length > 0) return problems;
      host.sentForms.push({ id, values });
      end(id);
      return [];
    },
    async openElicitedAddress(id) {
      refuse(host, 'openElicitedAddress');
      const { wants } = one(id);
      if (wants.kind !== 'address') throw refusal('not_found', 'it asks for something else');
      host.openedAddresses.push(wants.url);
      end(id);
    },
    async declineElicitation(id) {
      refuse(host, 'declineElicitation');
      one(id);
      host.declined.push(id);
      end(id);
    },
  } satisfies Partial<Platform>;
  return {
    ...commands,
    /** Lets servers ask for this instead. */
    setElicited,
  };
}

/** The checks of the real host, as far as tests need them. */
function problemOf({ name, required, input }: ElicitationField, value: JsonValue | undefined): FieldProblem[] {
  const problem = (kind: FieldProblemKind): FieldProblem[] => [{ field: name, problem: kind }];
  if (value === undefined || value === null) return required ? problem('missing') : [];
  if (input.kind === 'number') {
    if (typeof value !== 'number' || (input.whole && !Number.isInteger(value))) return problem('wrong_kind');
    if (input.min !== null && value < Number(input.min)) return problem('too_little');
    return input.max !== null && value > Number(input.max) ? problem('too_much') : [];
  }
  if (input.kind === 'text') {
    if (typeof value !== 'string') return problem('wrong_kind');
    if (input.min !== null && value.length < input.min) return problem('too_little');
    if (input.max !== null && value.length > input.max) return problem('too_much');
    return input.format === 'email' && !value.includes('@') ? problem('bad_format') : [];
  }
  if (input.kind === 'some' && Array.isArray(value)) {
    if (input.min !== null && value.length < input.min) return problem('too_little');
    return input.max !== null && value.length > input.max ? problem('too_much') : [];
  }
  return [];
}

/** A request of a server in a browser during development: `?asks=form` or `?asks=address`. */
export function fillElicitations(host: ReturnType<typeof elicitations>, asked: URLSearchParams): void {
  const kind = asked.get('asks');
  if (!kind) return;
  const from = {
    id: 'elicitation-1',
    chat: 'chat-1',
    tool: { server: 'travel', tool: 'book' },
    server_name: 'travel',
    server_command: 'uvx travel-server',
  };
  const choices = ['Aisle', 'Window'].map((title) => ({ value: title.toLowerCase(), title }));
  const meals = ['Vegan', 'Kosher', 'Halal'].map((title) => ({ value: title.toLowerCase(), title }));
  const field = { description: '', required: false, looks_secret: false };
  const fields: ElicitationField[] = [
    { ...field, name: 'name', title: 'Name on the ticket', required: true, input: { kind: 'text', format: null, min: 2, max: 80, default: 'Ada' } },
    { ...field, name: 'mail', title: 'Email', description: 'For the receipt.', input: { kind: 'text', format: 'email', min: null, max: null, default: null } },
    { ...field, name: 'people', title: 'People', required: true, input: { kind: 'number', whole: true, min: '1', max: '9', default: '2' } },
    { ...field, name: 'seat', title: 'Seat', input: { kind: 'one', choices, default: 'window' } },
    { ...field, name: 'meals', title: 'Meals', input: { kind: 'some', choices: meals, min: null, max: 2, default: [] } },
    { ...field, name: 'insured', title: 'Insurance', input: { kind: 'boolean', default: false } },
    { ...field, name: 'password', title: 'Password', looks_secret: true, input: { kind: 'text', format: null, min: null, max: null, default: null } },
  ];
  const url = 'https://pay.example.org/session/8f2c?state=9&next=%2Fdone';
  host.setElicited([
    kind === 'address'
      ? { ...from, message: 'Pay for the trip to go on.', wants: { kind: 'address', url, host: 'pay.example.org' } }
      : { ...from, message: 'Who is travelling?', wants: { kind: 'form', fields } },
  ]);
}
