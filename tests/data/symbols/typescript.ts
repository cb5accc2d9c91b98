@dec
export class A<T> {
  private x = 1;
  run(): void {}
}
export interface I { a: string; m(): void }
type T1 = string;
enum E { P }
namespace N {
  export function inside() {}
}
export const f = async () => 1;
