@Anno
public class A {
  private int x = 1, y;
  @Override
  public void run() { int z; }
  A() {}
  enum E { P }
}
interface I { void m(); int K = 1; }
