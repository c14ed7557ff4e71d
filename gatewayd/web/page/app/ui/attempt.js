/**
 * Work whose failure is told in a notice.
 */
import { toast } from "#app/core/toasts";
import { explain } from "#app/ui/states";

/**
 * Does something and tells of its failure.
 * @param {() => Promise<unknown>} work
 * @returns {Promise<boolean>} whether it is done
 */
export async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    const { what, detail } = explain(error);
    toast("error", [what, detail].filter(Boolean).join(" "));
    return false;
  }
}
