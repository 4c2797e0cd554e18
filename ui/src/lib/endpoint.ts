/** Whether what is sent to this address stays on this computer. Whatever cannot be read counts as leaving, as the host's own rule has it. */
export function staysHere(address: string): boolean {
  try {
    const host = new URL(address.trim()).hostname.toLowerCase().replace(/\.$/, '');
    return host === 'localhost' || host.endsWith('.localhost') || /^127(?:\.\d+){3}$/.test(host) || host === '[::1]';
  } catch {
    return false;
  }
}
