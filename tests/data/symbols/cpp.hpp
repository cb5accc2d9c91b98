namespace ns {
class K {
  int m(int);
};
}
template <typename T>
T most(T a) { return a; }
int ns::K::m(int a) { return a; }
using alias = int;
