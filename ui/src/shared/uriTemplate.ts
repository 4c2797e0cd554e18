/** Templates of addresses (RFC 6570), as far as servers of tools use them: variables with an operator before them. */

interface Operator {
  readonly first: string;
  readonly between: string;
  readonly named: boolean;
  readonly reserved: boolean;
}

const PLAIN: Operator = { first: '', between: ',', named: false, reserved: false };
const OPERATORS: Readonly<Record<string, Operator>> = {
  '+': { ...PLAIN, reserved: true },
  '#': { ...PLAIN, first: '#', reserved: true },
  '.': { ...PLAIN, first: '.', between: '.' },
  '/': { ...PLAIN, first: '/', between: '/' },
  ';': { first: ';', between: ';', named: true, reserved: false },
  '?': { first: '?', between: '&', named: true, reserved: false },
  '&': { first: '&', between: '&', named: true, reserved: false },
};

/** The address with these values in place of the variables; one that is empty is left out. */
export function filledTemplate(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(/\{([+#./;?&]?)([^{}]*)\}/g, (_, sign: string, inside: string) => {
    const { first, between, named, reserved } = OPERATORS[sign] ?? PLAIN;
    const filled = inside.split(',').flatMap((variable) => {
      const [, name = '', length] = /^([^:*]*)(?::(\d+))?\*?$/.exec(variable) ?? [];
      const whole = values.get(name) ?? '';
      const value = length === undefined ? whole : [...whole].slice(0, Number(length)).join('');
      if (value === '') return [];
      const encoded = reserved ? encodeURI(value) : encodeURIComponent(value);
      return [named ? `${name}=${encoded}` : encoded];
    });
    return filled.length === 0 ? '' : first + filled.join(between);
  });
}
