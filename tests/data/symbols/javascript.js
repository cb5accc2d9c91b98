export class A {
  x = 1;
  run() { const inner = 1; }
}
export default function main() {
}
const f = () => {
  return 1;
}, g = 2;
let { p, q } = r;
