/** The arguments of a call while a person reads and perhaps changes them: as fields, or as one JSON text. */

import { SvelteMap } from 'svelte/reactivity';

import type { JsonValue } from '../../bindings/serde_json/JsonValue';
import { visibleJson } from '../../shared/visible';
import {
  fieldOf,
  fieldsOf,
  fieldText,
  fieldValue,
  firstValue,
  isObject,
  missingOf,
  objectOf,
  sameValue,
  unsetOf,
  type ArgumentField,
} from './argumentFields';
import { exactText, parseExact, type Exact, type ExactObject } from './exactJson';

/** The reason why the arguments cannot be sent. */
export type ArgumentsProblem =
  { kind: 'json' } | { kind: 'values'; names: string[] } | { kind: 'missing'; names: string[] };

export class ArgumentsDraft {
  /** The arguments; while a text says none, the last ones that it said. */
  values = $state.raw<ExactObject>({});
  /** The fields. Their kinds stay while they are written in. */
  fields = $state.raw<readonly ArgumentField[]>([]);
  /** True if the whole is one JSON text. */
  whole = $state(false);
  /** That text. */
  text = $state('');
  /** Texts that are written in fields. */
  readonly #typed = new SvelteMap<string, string>();
  /** True while the text of the whole is no object. */
  #broken = $state(false);

  private readonly original: Exact;

  constructor(
    private readonly parameters: JsonValue,
    /** The arguments that were shown, as JSON text. */
    shown: string,
  ) {
    this.original = parseExact(shown) ?? null;
    this.reset();
  }

  /** The reason why they cannot be sent; `null` if they can. */
  readonly problem = $derived.by((): ArgumentsProblem | null => {
    if (this.whole && this.#broken) return { kind: 'json' };
    const wrong = this.fields.map(({ name }) => name).filter((name) => !this.whole && this.isWrong(name));
    if (wrong.length > 0) return { kind: 'values', names: wrong };
    const missing = missingOf(this.parameters, this.values);
    return missing.length > 0 ? { kind: 'missing', names: missing } : null;
  });

  /** The names of arguments that could be added. */
  readonly unset = $derived.by(() => unsetOf(this.parameters, this.values));

  /** The arguments in place of those that were shown; `null` if they are the same. */
  get changed(): ExactObject | null {
    return sameValue(this.values, this.original) ? null : this.values;
  }

  /** The arguments in place of those that were shown, as JSON text; `null` if they are the same. */
  get sent(): string | null {
    return this.changed && exactText(this.changed);
  }

  /** True if a text says nothing, so that it cannot be shown in the other way. */
  get stuck(): boolean {
    return this.problem?.kind === 'json' || this.problem?.kind === 'values';
  }

  /** True if there is something to return from. */
  get touched(): boolean {
    return this.changed !== null || this.stuck;
  }

  /** Returns to the arguments that were shown. */
  reset(): void {
    this.values = isObject(this.original) ? this.original : {};
    this.whole ||= !isObject(this.original);
    this.text = visibleJson(exactText(this.original, 2));
    this.#broken = !isObject(this.original);
    this.#layOut();
  }

  /** Shows the whole as one text, or as fields. Something wrong is put right first. */
  showWhole(whole: boolean): void {
    if (this.stuck) return;
    this.text = visibleJson(exactText(this.values, 2));
    this.#broken = false;
    this.#layOut();
    this.whole = whole;
  }

  #layOut(): void {
    this.#typed.clear();
    this.fields = fieldsOf(this.parameters, this.values);
  }

  /** Writes the text of the whole. */
  writeWhole(text: string): void {
    this.text = text;
    const values = objectOf(text);
    this.#broken = values === null;
    if (values) this.values = values;
  }

  /** The text in a field. */
  textOf({ name, kind }: ArgumentField): string {
    return this.#typed.get(name) ?? fieldText(kind, this.values[name]);
  }

  /** True if the text in a field says no value. */
  isWrong(name: string): boolean {
    const field = this.fields.find((other) => other.name === name);
    const typed = this.#typed.get(name);
    return field !== undefined && typed !== undefined && fieldValue(field.kind, typed) === undefined;
  }

  /** Writes the text of a field. */
  write({ name, kind }: ArgumentField, text: string): void {
    this.#typed.set(name, text);
    const value = fieldValue(kind, text);
    if (value !== undefined) this.set(name, value);
  }

  /** Sets the value of an argument. */
  set(name: string, value: Exact): void {
    this.values = { ...this.values, [name]: value };
  }

  /** Adds an argument that is not set. */
  add(name: string): void {
    const value = firstValue(this.parameters, name);
    this.set(name, value);
    this.#typed.delete(name);
    this.fields = [...this.fields, fieldOf(this.parameters, name, value)];
  }

  /** Takes an argument out. */
  remove(name: string): void {
    this.values = Object.fromEntries(Object.entries(this.values).filter(([other]) => other !== name));
    this.#typed.delete(name);
    this.fields = this.fields.filter((field) => field.name !== name);
  }
}
