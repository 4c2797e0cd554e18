/** The components that Ponder is built from, as `src-tauri/dependencies.py` listed them for the build. */
export interface Licences {
  components: Component[];
  /** The texts of licenses, each once. */
  texts: string[];
}

/** A library that is part of the programs or the pages. */
export interface Component {
  name: string;
  version: string;
  /** The license terms that apply, in SPDX's terms. */
  licence: string;
  url: string | null;
  /** The indexes of its texts. */
  texts: number[];
}

// A glob, because only a build creates the list: a development build has none.
const written = import.meta.glob<Licences>('../../generated/licences.json', { import: 'default' });

/** The list, or nothing if this build has none. It is large, so it is read on demand. */
export async function licences(): Promise<Licences | null> {
  const read = Object.values(written)[0];
  return read ? read() : null;
}

/** The components whose name or license holds every word that was typed. */
export function matching(components: Component[], typed: string): Component[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return components.filter(({ name, licence }) =>
    words.every((word) => `${name} ${licence}`.toLowerCase().includes(word)),
  );
}
