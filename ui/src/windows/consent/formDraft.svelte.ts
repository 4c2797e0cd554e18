/** The values of a server's form while a person writes them. */

import { SvelteMap } from 'svelte/reactivity';

import type { ElicitationField } from '../../bindings/ElicitationField';

/** A number as JSON writes it. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export class FormDraft {
  /** Texts, numbers as they are written, and the value of a choice; without an entry there is none. */
  readonly #texts = new SvelteMap<string, string>();
  readonly #switches = new SvelteMap<string, boolean>();
  readonly #chosen = new SvelteMap<string, readonly string[]>();

  constructor(private readonly fields: readonly ElicitationField[]) {
    for (const { name, required, input } of fields) {
      if (input.kind === 'boolean') {
        if (input.default !== null || required) this.#switches.set(name, input.default ?? false);
      } else if (input.kind === 'some') this.#chosen.set(name, input.default);
      else if (input.default !== null) this.#texts.set(name, input.default);
    }
  }

  text(name: string): string {
    return this.#texts.get(name) ?? '';
  }

  /** Writes a text or chooses a value; `null` takes it out. */
  write(name: string, text: string | null): void {
    if (text === null) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  /** True if a value was chosen or written, an empty one as well. */
  has(name: string): boolean {
    return this.#texts.has(name);
  }

  isOn(name: string): boolean {
    return this.#switches.get(name) ?? false;
  }

  switch(name: string): void {
    this.#switches.set(name, !this.isOn(name));
  }

  chosen(name: string): readonly string[] {
    return this.#chosen.get(name) ?? [];
  }

  toggle(name: string, value: string): void {
    const chosen = this.chosen(name);
    this.#chosen.set(name, chosen.includes(value) ? chosen.filter((other) => other !== value) : [...chosen, value]);
  }

  /** The values as a JSON object, each number as it is written. */
  get json(): string {
    const members = this.fields.flatMap((field) => {
      const value = this.#jsonOf(field);
      return value === null ? [] : [`${JSON.stringify(field.name)}:${value}`];
    });
    return `{${members.join(',')}}`;
  }

  /** The value of a field as JSON; `null` if it has none. */
  #jsonOf({ name, required, input }: ElicitationField): string | null {
    switch (input.kind) {
      case 'boolean': {
        const on = this.#switches.get(name);
        return on === undefined ? null : String(on);
      }
      case 'some': {
        const chosen = input.choices.map(({ value }) => value).filter((value) => this.chosen(name).includes(value));
        return chosen.length > 0 || required ? JSON.stringify(chosen) : null;
      }
      case 'number': {
        const text = this.text(name).trim();
        if (text === '') return null;
        return NUMBER.test(text) ? text : JSON.stringify(text);
      }
      case 'one':
        return this.has(name) ? JSON.stringify(this.text(name)) : null;
      case 'text':
        return this.text(name) === '' ? null : JSON.stringify(this.text(name));
    }
  }
}
