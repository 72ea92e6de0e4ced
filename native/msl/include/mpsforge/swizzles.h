// Included in the class of a vector of MPSFORGE_LENGTH: its swizzles, by both sets of letters. Each is a property, so
// that it takes no memory and can be assigned to.
#define MPSFORGE_SWIZZLE(count, name, ...)                                      \
  constexpr vec<T, count> get_##name() const { return pick<__VA_ARGS__>(); }    \
  constexpr void put_##name(vec<T, count> value) { place<__VA_ARGS__>(value); } \
  __declspec(property(get = get_##name, put = put_##name)) vec<T, count> name;

// use(letter, number, rest) for each letter. A macro is not expanded inside of itself, so each place of a swizzle has
// one.
#if MPSFORGE_LENGTH == 2
#define MPSFORGE_EACH1(use, a, b, c, d, ...) use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH2(use, a, b, c, d, ...) use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH3(use, a, b, c, d, ...) use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH4(use, a, b, c, d, ...) use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__)
#elif MPSFORGE_LENGTH == 3
#define MPSFORGE_EACH1(use, a, b, c, d, ...) \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH2(use, a, b, c, d, ...) \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH3(use, a, b, c, d, ...) \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH4(use, a, b, c, d, ...) \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__)
#else
#define MPSFORGE_EACH1(use, a, b, c, d, ...)                                                               \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__) \
      use(d, 3, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH2(use, a, b, c, d, ...)                                                               \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__) \
      use(d, 3, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH3(use, a, b, c, d, ...)                                                               \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__) \
      use(d, 3, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_EACH4(use, a, b, c, d, ...)                                                               \
  use(a, 0, a, b, c, d, __VA_ARGS__) use(b, 1, a, b, c, d, __VA_ARGS__) use(c, 2, a, b, c, d, __VA_ARGS__) \
      use(d, 3, a, b, c, d, __VA_ARGS__)
#endif
#define MPSFORGE_TWO(l, n, a, b, c, d, l1, n1, ...) MPSFORGE_SWIZZLE(2, l1##l, n1, n)
#define MPSFORGE_THREE(l, n, a, b, c, d, l2, n2, a2, b2, c2, d2, l1, n1, ...) MPSFORGE_SWIZZLE(3, l1##l2##l, n1, n2, n)
#define MPSFORGE_FOUR(l, n, a, b, c, d, l3, n3, a3, b3, c3, d3, l2, n2, a2, b2, c2, d2, l1, n1, ...) \
  MPSFORGE_SWIZZLE(4, l1##l2##l3##l, n1, n2, n3, n)
#define MPSFORGE_THIRD(l, n, a, b, c, d, ...)                               \
  MPSFORGE_EACH3(MPSFORGE_THREE, a, b, c, d, l, n, a, b, c, d, __VA_ARGS__) \
  MPSFORGE_EACH3(MPSFORGE_FOURTH, a, b, c, d, l, n, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_FOURTH(l, n, a, b, c, d, ...) MPSFORGE_EACH4(MPSFORGE_FOUR, a, b, c, d, l, n, a, b, c, d, __VA_ARGS__)
#define MPSFORGE_SECOND(l, n, a, b, c, d, ...)                 \
  MPSFORGE_EACH2(MPSFORGE_TWO, a, b, c, d, l, n, a, b, c, d, ) \
  MPSFORGE_EACH2(MPSFORGE_THIRD, a, b, c, d, l, n, a, b, c, d, )
MPSFORGE_EACH1(MPSFORGE_SECOND, x, y, z, w, )
MPSFORGE_EACH1(MPSFORGE_SECOND, r, g, b, a, )
#undef MPSFORGE_EACH1
#undef MPSFORGE_EACH2
#undef MPSFORGE_EACH3
#undef MPSFORGE_EACH4
#undef MPSFORGE_TWO
#undef MPSFORGE_THREE
#undef MPSFORGE_FOUR
#undef MPSFORGE_THIRD
#undef MPSFORGE_FOURTH
#undef MPSFORGE_SECOND
#undef MPSFORGE_SWIZZLE
