/** An entry of a list. One with a `problem` cannot be chosen and says why. */
export interface Option<Value extends string = string> {
  value: Value;
  label: string;
  note?: string;
  problem?: string;
}

/** An option for each value, in this order. */
export function optionsOf<const Value extends string>(
  values: readonly Value[],
  label: (value: Value) => string,
): Option<Value>[] {
  return values.map((value) => ({ value, label: label(value) }));
}
