/* amp/base.hpp: what amp/amp.hpp and amp/compile.hpp have in common: the exception, and views of a caller's arrays.
 * C++17, header only; no symbol of its own is exported. */
#ifndef AMP_BASE_HPP
#define AMP_BASE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "amp/base.h"

namespace amp {

/* Every call that fails throws this: what() says what was wrong, where, and what to do about it. */
class Error : public std::runtime_error {
  public:
    Error(amp_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    amp_status status() const noexcept { return status_; }

  private:
    amp_status status_;
};

namespace detail {

/* amp_error for one call: check(status) throws what it says. */
class Call {
  public:
    amp_error *error() noexcept { return &error_; }
    void check(amp_status status) const {
        if (status != AMP_OK) throw Error(status, error_.message);
    }

  private:
    amp_error error_{};
};

/* What a call creates; released if the C++ object around it cannot be made. */
template <class Object, void (*retain)(Object *), void (*release)(Object *)> class Handle {
  public:
    Handle() noexcept = default;
    explicit Handle(Object *adopted) noexcept : object_(adopted) {}
    Handle(const Handle &other) noexcept : object_(other.object_) {
        if (object_) retain(object_);
    }
    Handle(Handle &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle &operator=(Handle other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { release(object_); }
    Object *get() const noexcept { return object_; }

  private:
    Object *object_ = nullptr;
};

/* The dtype of an element type; 16-bit words are f16 or bf16, whichever is asked for. */
template <class T> constexpr amp_dtype dtype_of() {
    using U = std::remove_cv_t<T>;
    constexpr bool is_signed = std::is_integral_v<U> && std::is_signed_v<U>;
    constexpr bool is_unsigned = std::is_integral_v<U> && std::is_unsigned_v<U>;
    return std::is_same_v<U, float>        ? AMP_DT_F32
           : std::is_same_v<U, double>     ? AMP_DT_F64
           : std::is_same_v<U, bool>       ? AMP_DT_BOOL
           : is_signed && sizeof(U) == 4   ? AMP_DT_I32
           : is_signed && sizeof(U) == 8   ? AMP_DT_I64
           : is_unsigned && sizeof(U) == 1 ? AMP_DT_U8
           : is_unsigned && sizeof(U) == 2 ? AMP_DT_F16
                                           : AMP_DT_NONE;
}

inline bool holds(amp_dtype array, amp_dtype tensor) {
    return array == tensor || (array == AMP_DT_F16 && tensor == AMP_DT_BF16) ||
           (array == AMP_DT_F32 && tensor == AMP_DT_TF32) || (array == AMP_DT_U8 && tensor == AMP_DT_BOOL);
}

/* The number type that a T is made of: float of float, float[3][4] and std::array<float, 4>; void where it is none. */
template <class T, class = void> struct number { using type = void; };
template <class T> struct number<T, std::enable_if_t<std::is_arithmetic_v<T>>> { using type = T; };
template <class T> struct number<T, std::enable_if_t<std::is_array_v<T>>> : number<std::remove_all_extents_t<T>> {};
template <class T, std::size_t size> struct number<std::array<T, size>> : number<T> {};

/* What an A refers to: the elements of a C array, a pointer, or something with data() and size(). */
template <class A, class = void> struct elements { using type = void; };
template <class A> struct elements<A, std::enable_if_t<std::is_array_v<A> || std::is_pointer_v<A>>> {
    using type = std::remove_pointer_t<std::decay_t<A>>;
};
template <class A> struct elements<A, std::void_t<decltype(std::declval<A &>().data(), std::declval<A &>().size())>> {
    using type = std::remove_pointer_t<decltype(std::declval<A &>().data())>;
};

} // namespace detail

/* A view of an array that the caller keeps: its address, its number of elements and their type.  Made from anything
 * with data() and size() (std::vector, std::array, std::span), a C array of any rank, a pointer and a count, or a
 * pointer alone, whose size is then not checked (nor, of a void pointer, its type).  Address is const void * or
 * void *. */
template <class Address> class ArrayView {
    template <class A> using Element = typename detail::elements<std::remove_reference_t<A>>::type;
    template <class A> using Number = typename detail::number<std::remove_cv_t<Element<A>>>::type;
    template <class A>
    using Viewable = std::enable_if_t<!std::is_void_v<Number<A>> && std::is_convertible_v<Element<A> *, Address>>;

  public:
    static constexpr std::size_t unknown = static_cast<std::size_t>(-1);

    ArrayView(Address data) noexcept : data_(data) {}
    template <class T, class = Viewable<T *>>
    ArrayView(T *data, std::size_t count) noexcept
        : data_(data), count_(count), dtype_(detail::dtype_of<Number<T *>>()) {}
    template <class A, class = Viewable<A>> ArrayView(A &&array) noexcept : dtype_(detail::dtype_of<Number<A>>()) {
        using Plain = std::remove_reference_t<A>;
        if constexpr (std::is_pointer_v<std::decay_t<Plain>> && !std::is_array_v<Plain>) {
            data_ = array;
        } else if constexpr (std::is_array_v<Plain>) {
            data_ = array;
            count_ = sizeof array / sizeof(Number<A>);
        } else {
            data_ = array.data();
            count_ = array.size() * (sizeof(Element<A>) / sizeof(Number<A>));
        }
    }

    Address data() const noexcept { return data_; }
    std::size_t count() const noexcept { return count_; } /* |unknown| of a pointer alone */
    amp_dtype dtype() const noexcept { return dtype_; }   /* AMP_DT_NONE of a void pointer */

  private:
    Address data_ = nullptr;
    std::size_t count_ = unknown;
    amp_dtype dtype_ = AMP_DT_NONE;
};

using Input = ArrayView<const void *>; /* is read during the call */
using Output = ArrayView<void *>;      /* is written in full */

} // namespace amp
#endif
