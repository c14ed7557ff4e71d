/**
 * What a view loads from the gateway.
 */
import { get } from "#app/core/api";
import { useCallback, useEffect, useRef, useState } from "#app/core/html";

/**
 * Loads something, anew when its address or one of `keys` changes.
 * @param {string | null | (() => Promise<any>)} source an address, null for nothing, or a function that loads
 * @param {unknown[]} [keys] what the function depends on
 * @returns {{value: any, error: unknown, isLoading: boolean, reload: () => Promise<void>, setValue: (value: any) => void}}
 *   `value` is undefined until it is there; an older one stays while the next is loaded, and after a failure
 */
export function useResource(source, keys = []) {
  const [state, setState] = useState({ value: undefined, error: null, isLoading: source !== null });
  const turn = useRef(0);
  const isAddress = typeof source !== "function";
  const reload = useCallback(async () => {
    if (source === null) return;
    const mine = ++turn.current;
    const settle = (next) => mine === turn.current && setState((now) => ({ ...now, isLoading: false, ...next }));
    try {
      settle({ value: await (isAddress ? get(source) : source()), error: null });
    } catch (error) {
      settle({ error });
    }
  }, isAddress ? [source] : keys);
  useEffect(() => {
    reload();
    return () => void turn.current++;
  }, [reload]);
  return { ...state, reload, setValue: (value) => setState((now) => ({ ...now, value, error: null })) };
}
