#define MAX 10
typedef struct point { int x; } point_t;
struct n *f(struct n *a);
static char *name(void)
{
  int local;
  return 0;
}
int count = 1;
#ifdef X
int on;
#endif
